"""PostgreSQL: who runs statements there (run), what they say to each other (talk), how our own connections are made
(connect), and what the database must have (schema).
"""

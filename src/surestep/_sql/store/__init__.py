"""Stores on a database: what they do, as generators of statements (`ops`), and their public face (`face`).

`dialect` holds what differs between databases, `filters` lets the database leave out what can't match,
`schema` brings the tables up to date, `sweep` deletes what has expired from time to time.
"""

"""Savers on a database: what they do, as generators of statements (`ops`), and who runs those (`run`).

`ops` is written once for all databases and for both worlds, sync and async. `dialect` holds what differs
between databases, `migrate` brings a schema up to date, `saver` is the public face that a saver inherits.
"""

"""Taking over a database of LangGraph's savers: `surestep import-langgraph`.

    sources.py   reads LangGraph's tables, in SQLite and PostgreSQL, and nothing else of the database
    raw.py       values as they lie there: no class of the application is needed, and none is made
    threads.py   writes a thread through our saver, in one transaction
    command.py   the command: what is still to do, in what order, and how far it is

Rules
1. The source is opened for reading only.
2. A thread is imported as a whole or not at all, with all of its namespaces: a thread that is there can be resumed. So
   an import that was cut off goes on with the first thread that is missing.
3. A thread that is there and has moved on here is left alone. One that has moved on there is brought up to date: its
   newer checkpoints are added. Writes of a task that has some here are left alone too.
"""

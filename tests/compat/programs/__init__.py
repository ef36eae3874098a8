"""The programs, by what they use. Each is `program(E) -> observation`, written once for both engines."""

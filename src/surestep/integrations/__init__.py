"""Other libraries, each in a module of its own that is loaded only when that library is in the process."""

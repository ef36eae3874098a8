"""Drivers: they do what the core asks for, on threads or on an event loop."""

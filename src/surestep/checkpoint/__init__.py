"""Checkpoints: what a thread's state is saved as, the savers, and the serializer they share."""

"""How values become bytes: the serializer protocol, its default (`jsonplus`) and encryption at rest
(`encrypted`)."""

"""Long-term memory: values under namespaces that outlive a thread."""

"""The knowledge base: files, their bytes, and documents that Remit writes."""

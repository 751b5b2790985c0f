"""The stage download: files from URLs, archives and local folders, in any published format."""

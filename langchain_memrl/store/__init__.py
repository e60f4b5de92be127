"""The only code that touches a disk or a server. One transaction per effect."""

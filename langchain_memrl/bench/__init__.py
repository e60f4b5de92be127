"""What a bank costs on this machine, measured beside bare libraries and other memories."""

"""What we know of one job, as frozen values; past this border nothing is an untyped dict."""

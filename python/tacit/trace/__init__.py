"""A run as a picture: what each module and operator took, recorded while it runs and shown as a
page."""

"""The instruments that papers share."""

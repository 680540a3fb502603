"""The builder: runs the chapters, stages and renders the site, keeps the records and the ledger."""

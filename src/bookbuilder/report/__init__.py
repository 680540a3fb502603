"""Reports each replication as editors ask for it. In: chapters, book/reports/. Out: a page and a JSON file each."""

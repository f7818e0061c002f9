"""Word, PowerPoint and spreadsheet files, and OpenDocument text."""

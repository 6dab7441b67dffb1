"""From records to released versions: builds, versions, labels, releases and their review."""

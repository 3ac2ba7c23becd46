"""Stage bodies that recipes share."""

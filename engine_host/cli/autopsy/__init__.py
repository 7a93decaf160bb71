"""`sndr autopsy`: how engines died."""

"""Screenshots of every screen, at three widths, in the light and dark theme: python3 dev.py shots."""

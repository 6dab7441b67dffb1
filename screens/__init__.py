"""Pictures of every screen, at three widths, in light and in dark: python3 dev.py shots."""

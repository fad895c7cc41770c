"""What the pages show: notebooks, terminal sessions and pictures, made anew."""

"""What runs programs.  Engines know programs and arrays, not how programs are made."""

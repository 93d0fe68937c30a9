"""`python -m linkwright`."""

from linkwright.cli.main import main

main()

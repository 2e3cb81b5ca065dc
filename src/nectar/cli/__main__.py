"""`python -m nectar.cli`: the same as the `nectar` command, for where scripts are not on the PATH."""

from nectar.cli.app import main

main()

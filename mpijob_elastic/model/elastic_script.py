"""The text of elastic.sh, which webhook and controller put into the operator's ConfigMap."""

from importlib.resources import files

from mpijob_elastic import names

TEXT = files(__package__).joinpath(names.KEY_ELASTIC).read_text()

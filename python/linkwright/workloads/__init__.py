"""Networks to train, one TOML file each, in the format of `linkwright predict`."""

def fingerprint(f, types=None):
    from nectar.keys.api import fingerprint
    return str(fingerprint(f, types))

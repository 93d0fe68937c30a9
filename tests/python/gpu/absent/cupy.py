raise ImportError("hidden by the tests")

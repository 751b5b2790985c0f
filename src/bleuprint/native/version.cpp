extern "C" int native_version() { return 4; }

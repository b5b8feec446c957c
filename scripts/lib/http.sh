# What tests of the HTTP API need: a fuzzer that reads the OpenAPI text, and a generator of clients.

# Schemathesis, which sends what the description allows and what it does not.
need_schemathesis() {
    need_python_package schemathesis 'schemathesis==4.32.5'
    export WINDLASS_TEST_SCHEMATHESIS="$needs_cache/schemathesis/bin/schemathesis"
}

# Makes the certificate of an encrypted server.
need_openssl() {
    need_program openssl openssl
}

# A generator of Python clients, in an environment that its clients can be run in.
need_client_generator() {
    need_python_package openapi-client 'openapi-python-client==0.26.2'
    export WINDLASS_TEST_OPENAPI_CLIENT="$needs_cache/openapi-client/bin"
}

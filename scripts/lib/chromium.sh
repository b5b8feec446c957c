# A browser and an accessibility checker, for the tests of the web page. Sourced after needs.sh, whose cache and
# `need_program` it uses.

# Debian's Chromium. Tests start it without a window, with a profile of its own, and speak to it over pipes.
need_chromium() {
    need_program chromium chromium
    WINDLASS_TEST_CHROMIUM="$(command -v chromium)"
    export WINDLASS_TEST_CHROMIUM
}

# axe-core, from npm: the rules that every page is checked by.
need_axe() {
    local home="$needs_cache/axe-core"
    need_npm_package 'axe-core@4.14.0' "$home"
    export WINDLASS_TEST_AXE="$home/node_modules/axe-core/axe.min.js"
}

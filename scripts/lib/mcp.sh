# A real MCP server, from npm. Sourced after needs.sh, whose cache and `need_program` it uses.

# The reference file system server; its tests find it by the exported variable.
need_mcp() {
    local home="$needs_cache/mcp-filesystem"
    need_npm_package '@modelcontextprotocol/server-filesystem@2026.8.31' "$home"
    export WINDLASS_TEST_MCP_FILESYSTEM="$home/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
}

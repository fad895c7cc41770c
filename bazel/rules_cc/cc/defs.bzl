"""The part of rules_cc that Bazel's own rules load, from built-in rules."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
cc_flags_supplier = None
cc_libc_top_alias = native.cc_libc_top_alias
cc_proto_library = native.cc_proto_library
cc_toolchain_alias = native.cc_toolchain_alias
fdo_prefetch_hints = native.fdo_prefetch_hints
fdo_profile = native.fdo_profile
objc_library = native.objc_library

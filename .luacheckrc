std = "lua54"
max_line_length = 120
exclude_files = { "build" }
files["lua/mulligan/meta"] = { ignore = { "212", "241", "631" } } -- functions without bodies
files["spec"] = { std = "+busted" }

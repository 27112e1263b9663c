-- certificates.lua: authorities and certificates that specs make, as PEM files in a folder, by the program openssl.
--
--   certificates.missing()                              -- why there can be none; nil: there can
--   certificates.authority(folder, "authority")         -- authority.pem, authority.key
--   certificates.leaf(folder, "server", "authority", "subjectAltName=DNS:localhost")

local certificates = {}

local KEY = { "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes" }

function certificates.missing()
    local found = os.execute "command -v openssl >/dev/null"
    return not found and "openssl isn't installed (package openssl)" or nil
end

local function openssl(folder, words)
    local done = folder:run({ "openssl", table.unpack(words) })
    assert(done.code == 0, done.err)
end

local function request(folder, name, more)
    local words = { "req", "-subj", "/CN=" .. name, "-keyout", name .. ".key" }
    table.move(KEY, 1, #KEY, #words + 1, words)
    openssl(folder, table.move(more, 1, #more, #words + 1, words))
end

-- authority makes one that has signed itself.
function certificates.authority(folder, name)
    request(folder, name, { "-x509", "-days", "2", "-out", name .. ".pem", "-addext",
        "basicConstraints=critical,CA:TRUE" })
end

-- leaf makes a certificate of `issuer`; `extension` is a line as OpenSSL's files have it.
function certificates.leaf(folder, name, issuer, extension)
    request(folder, name, { "-out", name .. ".csr" })
    folder:write(name .. ".ext", (extension or "basicConstraints=CA:FALSE") .. "\n")
    openssl(folder, { "x509", "-req", "-in", name .. ".csr", "-CA", issuer .. ".pem", "-CAkey", issuer .. ".key",
        "-CAcreateserial", "-days", "2", "-out", name .. ".pem", "-extfile", name .. ".ext" })
end

return certificates

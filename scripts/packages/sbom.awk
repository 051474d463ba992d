# Writes what is in a command as CycloneDX, in JSON: awk -v name=… -v version=… -v time=… -v serial=… -f sbom.awk
# Cargo.lock LINKED ALL. The last two are of `cargo tree --prefix depth --format '|{p}|{l}'`: LINKED has the crates that
# are linked into the command, and ALL also those that only its build runs, which get the scope `excluded`.

FNR == 1 { file++ }

# Cargo.lock: the checksum of each crate's archive.
file == 1 {
    gsub(/"/, "", $3)
    if ($1 == "name") crate = $3
    if ($1 == "version") crate = crate "@" $3
    if ($1 == "checksum") checksum[crate] = $3
    next
}

{
    split($0, part, "|")
    split(part[2], words, " ")
    id = words[1] "@" substr(words[2], 2)
    if (file == 2) {
        linked[id] = 1
        next
    }
    depth = part[1] + 0
    at[depth] = id
    if (!(id in licence)) {
        sub(/ \(\*\)$/, "", part[3])
        gsub(/ *\/ */, " OR ", part[3])
        licence[id] = part[3]
        order[++count] = id
    }
    parent = depth > 0 ? at[depth - 1] : ""
    if (parent != "" && !((parent, id) in edge)) {
        edge[parent, id] = 1
        needs[parent] = needs[parent] (needs[parent] == "" ? "" : ", ") quoted(purl(id))
    }
}

function quoted(text) {
    gsub(/["\\]/, "\\\\&", text)
    return "\"" text "\""
}

function purl(id) { return "pkg:cargo/" id }

# component ID KIND: without the brace at its end.
function component(id, kind, words) {
    split(id, words, "@")
    printf "{ \"type\": %s, \"bom-ref\": %s, \"name\": %s, \"version\": %s, \"purl\": %s", quoted(kind), \
        quoted(purl(id)), quoted(words[1]), quoted(words[2]), quoted(purl(id))
    if (licence[id] != "") printf ", \"licenses\": [{ \"expression\": %s }]", quoted(licence[id])
}

END {
    print "{"
    print "  \"bomFormat\": \"CycloneDX\","
    print "  \"specVersion\": \"1.5\","
    print "  \"serialNumber\": " quoted("urn:uuid:" serial) ","
    print "  \"version\": 1,"
    print "  \"metadata\": {"
    print "    \"timestamp\": " quoted(time) ","
    printf "    \"component\": "
    component(order[1], "application")
    printf ", \"properties\": [{ \"name\": \"debian:package\", \"value\": %s }]", quoted(name)
    printf ", \"description\": %s }\n", quoted(name " " version)
    print "  },"
    print "  \"components\": ["
    for (i = 2; i <= count; i++) {
        id = order[i]
        printf "    "
        component(id, "library")
        printf ", \"scope\": %s", quoted(id in linked ? "required" : "excluded")
        if (id in checksum) printf ", \"hashes\": [{ \"alg\": \"SHA-256\", \"content\": %s }]", quoted(checksum[id])
        print " }" (i < count ? "," : "")
    }
    print "  ],"
    print "  \"dependencies\": ["
    for (i = 1; i <= count; i++) {
        printf "    { \"ref\": %s, \"dependsOn\": [%s] }%s\n", quoted(purl(order[i])), needs[order[i]], \
            i < count ? "," : ""
    }
    print "  ]"
    print "}"
}

-- Shows in Wireshark and tshark what Hopwise endpoints say:
--
-- * the TCP options in which their agents talk: our own (kind 253 with ExID 0x4857, RFC 6994) and the ACK-rate request
--   (kind 254 with ExID 0x00AC). The latter is that of draft-ietf-tcpm-ack-rate-request-10: its rate is the high seven
--   bits of the octet, as in Wireshark's own TARR field;
-- * the comments of captures, as fields: who decided an ACK, by which rule, how long it was held;
-- * the comments of radios' captures: which try of the MAC a frame is, after which backoff, and what it was lost to;
-- * what drivers tell of our own links;
-- * GPSR's header (IP protocol 254), with what follows it.
--
--   tshark -X lua_script:docs/wireshark/hopwise.lua -r FILE -Y 'hopwise.held_ms > 50' -T fields -e hopwise.agent
--
-- README.md beside this file tells how to install it, with columns, colours and a profile.

local KIND_HOPWISE, EXID_HOPWISE = 253, 0x4857
local KIND_RATE, EXID_RATE = 254, 0x00ac
local END, NOP = 0, 1

local hopwise = Proto("hopwise", "Hopwise agents")

local offers = {
    ProtoField.bool("hopwise.offer.tell_cwnd", "Tells its congestion window", 8, nil, 0x01),
    ProtoField.bool("hopwise.offer.use_cwnd", "Uses the peer's congestion window", 8, nil, 0x02),
    ProtoField.bool("hopwise.offer.tell_dup_count", "Counts duplicate ACKs for the peer", 8, nil, 0x04),
    ProtoField.bool("hopwise.offer.use_dup_count", "Uses the peer's count of duplicate ACKs", 8, nil, 0x08),
    ProtoField.bool("hopwise.offer.tell_ack_after", "Tells after how many segments it wants an ACK", 8, nil, 0x10),
    ProtoField.bool("hopwise.offer.use_ack_after", "Acknowledges after so many segments as the peer wants", 8, nil, 0x20),
    ProtoField.bool("hopwise.offer.tell_in_window", "Tells cwnd in the window field of data", 8, nil, 0x40),
    ProtoField.bool("hopwise.offer.use_in_window", "Finds cwnd in the window field of data", 8, nil, 0x80),
}
local fields = {
    offer = ProtoField.uint8("hopwise.offer", "Offer", base.HEX),
    cwnd = ProtoField.uint16("hopwise.cwnd", "Congestion window in segments"),
    dup_count = ProtoField.uint8("hopwise.dup_count", "Segments out of order since the last in order"),
    ack_after = ProtoField.uint8("hopwise.ack_after", "Segments until the sender wants an ACK, this one counted"),
    rate_offer = ProtoField.bool("hopwise.rate_offer", "Understands ACK-rate requests"),
    rate = ProtoField.uint8("hopwise.rate", "Segments that are to share an ACK"),
}
-- From the comments of captures.
local said = {
    agent = ProtoField.string("hopwise.agent", "Receiver agent"),
    senders = ProtoField.string("hopwise.senders", "Sender agents"),
    rule = ProtoField.string("hopwise.rule", "Rule"),
    clause = ProtoField.string("hopwise.clause", "Clause"),
    have = ProtoField.uint32("hopwise.have", "Counted"),
    want = ProtoField.uint32("hopwise.want", "Wanted"),
    place = ProtoField.string("hopwise.place", "Place of the data"),
    withheld = ProtoField.bool("hopwise.withheld", "The ACK was withheld"),
    due_ms = ProtoField.double("hopwise.due_ms", "Longest wait for the ACK (ms)"),
    ack = ProtoField.uint32("hopwise.ack", "ACK that was decided"),
    repeated = ProtoField.bool("hopwise.repeated", "The ACK was said before"),
    held_ms = ProtoField.double("hopwise.held_ms", "First segment waited for the ACK (ms)"),
    merged = ProtoField.uint32("hopwise.merged", "ACKs that went into this one"),
    answers = ProtoField.framenum("hopwise.answers", "Answers frame", base.NONE, frametype.ACK),
    ece_for = ProtoField.framenum("hopwise.ece_for", "Echoes the mark of frame"),
    sent = ProtoField.string("hopwise.sent", "Sent as"),
    lost_by = ProtoField.string("hopwise.lost_by", "Lost by"),
    lost = ProtoField.uint32("hopwise.lost", "Segments found to be lost"),
    allowed = ProtoField.uint32("hopwise.allowed", "Bytes allowed in flight"),
    flight = ProtoField.uint32("hopwise.flight", "Bytes in flight"),
    dropped = ProtoField.string("hopwise.dropped", "Dropped, because"),
    acked = ProtoField.uint32("hopwise.acked", "Bytes newly acknowledged"),
    rtt_ms = ProtoField.double("hopwise.rtt_ms", "Round trip (ms)"),
    srtt_ms = ProtoField.double("hopwise.srtt_ms", "Smoothed round trip (ms)"),
    rto_ms = ProtoField.double("hopwise.rto_ms", "RTO (ms)"),
    recovery = ProtoField.string("hopwise.recovery", "Recovery"),
    ce = ProtoField.bool("hopwise.ce", "Came with a mark of the network"),
    hops = ProtoField.uint8("hopwise.hops", "Hops to the peer"),
    agents_by = ProtoField.string("hopwise.agents_by", "Agents chosen by"),
    by_rtt_ms = ProtoField.double("hopwise.by_rtt_ms", "The wait follows the least round trip (ms)"),
    by_rate = ProtoField.double("hopwise.by_rate", "The wait follows the rate (bytes/s)"),
    shadow = ProtoField.string("hopwise.shadow", "A shadow would"),
    mac_to = ProtoField.string("hopwise.mac.to", "Sent for"),
    mac_try = ProtoField.uint32("hopwise.mac.try", "Try"),
    mac_most = ProtoField.uint32("hopwise.mac.most", "Most tries"),
    mac_cw = ProtoField.uint32("hopwise.mac.cw", "Contention window"),
    mac_backoff = ProtoField.uint32("hopwise.mac.backoff", "Backoff in slots"),
    mac_lost_to = ProtoField.string("hopwise.mac.lost_to", "Lost to"),
    mac_given_up = ProtoField.bool("hopwise.mac.given_up", "The packet is given up"),
    link_to = ProtoField.string("hopwise.link.to", "Link to"),
    link_signal = ProtoField.int32("hopwise.link.signal_dbm", "Signal (dBm)"),
    link_rate = ProtoField.double("hopwise.link.mbps", "Bit rate (Mbit/s)"),
    link_packets = ProtoField.uint32("hopwise.link.packets", "Packets since the last comment"),
    link_retries = ProtoField.uint32("hopwise.link.retries", "Retries since then"),
    link_lost = ProtoField.uint32("hopwise.link.lost", "Packets given up since then"),
    link_airtime = ProtoField.double("hopwise.link.airtime", "Airtime since then (%)"),
    link_over = ProtoField.uint32("hopwise.link.over_ms", "Time since then (ms)"),
    link_heard = ProtoField.double("hopwise.link.heard_ms", "Last heard before (ms)"),
    link_told = ProtoField.double("hopwise.link.told_ms", "Told before (ms)"),
}
-- A comment may say these more than once.
local is_repeated = { shadow = true }
local malformed = ProtoExpert.new("hopwise.malformed", "An option that is not well formed", expert.group.MALFORMED,
    expert.severity.WARN)

for _, field in ipairs(offers) do
    table.insert(hopwise.fields, field)
end
for _, field in pairs(fields) do
    table.insert(hopwise.fields, field)
end
for _, field in pairs(said) do
    table.insert(hopwise.fields, field)
end
hopwise.experts = { malformed }

local tcp_options = Field.new("tcp.options")
local tcp_syn = Field.new("tcp.flags.syn")
local comments = Field.new("frame.comment")

local function summarise(pinfo, text)
    pinfo.cols.info:append(" [" .. text .. "]")
end

-- A SYN's option is a byte of bits, and nothing else.
local function offer(body, tree)
    if body:len() ~= 1 then
        return nil
    end
    local branch = tree:add(fields.offer, body)
    for _, field in ipairs(offers) do
        branch:add(field, body)
    end
    return string.format("offers 0x%02x", body(0, 1):uint())
end

-- Later options: a byte of bits, and the fields that it announces, in the order of the bits.
local function notes(body, tree)
    if body:len() < 1 then
        return nil
    end
    local bits, at, said = body(0, 1):uint(), 1, {}
    local announced = { { 1, "cwnd", 2 }, { 2, "dup_count", 1 }, { 4, "ack_after", 1 } }
    for _, one in ipairs(announced) do
        local bit, name, len = one[1], one[2], one[3]
        if math.floor(bits / bit) % 2 == 1 then
            if at + len > body:len() then
                return nil
            end
            tree:add(fields[name], body(at, len))
            table.insert(said, name .. "=" .. body(at, len):uint())
            at = at + len
        end
    end
    if bits >= 8 or at ~= body:len() then
        return nil
    end
    return table.concat(said, " ")
end

local function rate(body, is_syn, tree)
    if is_syn and (body == nil or body:len() == 0) then
        tree:add(fields.rate_offer, true)
        return "understands ACK-rate requests"
    end
    if is_syn or body == nil or body:len() ~= 1 then
        return nil
    end
    local asked = math.floor(body(0, 1):uint() / 2)
    tree:add(fields.rate, body(0, 1), asked)
    return "asks for rate " .. asked
end

-- One option, kind and length included.
local function dissect(option, is_syn, pinfo, tree)
    local kind, exid = option(0, 1):uint(), option(2, 2):uint()
    local body = option:len() > 4 and option(4) or nil
    local is_ours = kind == KIND_HOPWISE and exid == EXID_HOPWISE
    local is_rate = kind == KIND_RATE and exid == EXID_RATE
    if not is_ours and not is_rate then
        return
    end
    local branch = tree:add(hopwise, option)
    local said
    if is_rate then
        said = rate(body, is_syn, branch)
    elseif body ~= nil and is_syn then
        said = offer(body, branch)
    elseif body ~= nil then
        said = notes(body, branch)
    end
    if said == nil then
        branch:add_proto_expert_info(malformed)
    else
        branch:append_text(": " .. said)
        summarise(pinfo, said)
    end
end

-- "count 3 of 5", "deadline", or "not-in-order (fills a hole)".
local function why(add, text)
    local rule, rest = text:match("^([%w-]+)(.*)$")
    if rule == nil then
        return
    end
    add("rule", rule)
    local have, want = rest:match("^ (%d+) of (%d+)")
    if have then
        add("have", tonumber(have))
        add("want", tonumber(want))
    end
    add("place", rest:match("^ %((.-)%)"))
end

-- Why an ACK was decided, and what became of it on its way out.
local function decision(add, number, reason)
    add("ack", tonumber(number))
    add("held_ms", tonumber(reason:match(", ([%d.]+) ms after the first segment it held")))
    add("merged", tonumber(reason:match(", in place of (%d+) more")))
    local rule, clause, whatever = reason:match("^the protocol demands it, ([%w-]+) ?%(?(.-)%)?, whatever (.-) says")
    if rule then
        add("rule", rule)
        add("clause", clause)
        add("agent", whatever)
        return
    end
    if reason:match("^it rides on data") then
        add("rule", "piggyback")
        return
    end
    local agent, text = reason:match("^(.-) decided it, (.*)$")
    if not agent then
        agent, text = reason:match("^(.-) repeats it, (.*)$")
    end
    if agent then
        add("agent", agent)
        why(add, text)
    end
end

local function limits(add, text)
    local senders, allowed = text:match("^(.-) allows (%d+) bytes in flight")
    add("senders", senders)
    add("allowed", tonumber(allowed))
    add("flight", tonumber(text:match(", (%d+) were$")))
end

-- "for n1, try 3 of at most 7, contention window 127, backoff 54 slots".
local function access(add, to, text)
    add("mac_to", to)
    local try, most = text:match("^try (%d+) of at most (%d+)")
    add("mac_try", tonumber(try))
    add("mac_most", tonumber(most))
    local window, slots = text:match(", contention window (%d+), backoff (%d+) slots$")
    add("mac_cw", tonumber(window))
    add("mac_backoff", tonumber(slots))
end

-- The cause of a loss, of a frame or of its answer: "an RTS of n2", "the channel", or why no answer came.
local function lost_to(add, text)
    if text:match("^the channel did not carry it") or text == "lost on the channel" then
        add("mac_lost_to", "the channel")
    else
        add("mac_lost_to", text:match("^lost at .- to (.*)$") or text:match("^lost here to (.*)$") or text)
    end
end

-- Each shape of a comment's parts, with what it says.
local shapes = {
    { "^dropped: (%S+) ?%(?(.-)%)?$", function(add, reason, place)
        add("dropped", reason)
        add("place", place)
    end },
    { "^ACK withheld by (.-): (.*)$", function(add, agent, text)
        add("withheld", true)
        add("agent", agent)
        why(add, text)
        add("due_ms", tonumber(text:match(", for ([%d.]+) ms at most")))
        add("by_rtt_ms", tonumber(text:match(", by the least round trip of ([%d.]+) ms")))
        add("by_rate", tonumber(text:match(", by the rate of (%d+) bytes/s")))
    end },
    { "^duplicate ACK (%d+): (.*)$", function(add, number, reason)
        add("repeated", true)
        decision(add, number, reason)
    end },
    { "^ACK (%d+): (.*)$", decision },
    { "^with ACK (%d+): (.*)$", decision },
    { "^answers frame (%d+)$", function(add, frame) add("answers", tonumber(frame)) end },
    { "^ECE for the mark of frame (%d+)$", function(add, frame) add("ece_for", tonumber(frame)) end },
    { "^%d+ bytes.-, (.*)$", function(add, text)
        local what, rest = text:match("^(.-): (.*)$")
        what = what or text
        local as, by = what:match("^(.-), lost by (.*)$")
        add("sent", as or what)
        add("lost_by", by)
        if rest then
            limits(add, rest)
        end
    end },
    { "^(.- allows %d+ bytes in flight)$", limits },
    { "^acknowledges (%d+) bytes?$", function(add, bytes) add("acked", tonumber(bytes)) end },
    { "^round trip ([%d.]+) ms, smoothed ([%d.]+) ms, RTO ([%d.]+) ms$", function(add, rtt, srtt, rto)
        add("rtt_ms", tonumber(rtt))
        add("srtt_ms", tonumber(srtt))
        add("rto_ms", tonumber(rto))
    end },
    { "^(%d+) segments? lost by (.*)$", function(add, count, by)
        add("lost", tonumber(count))
        add("lost_by", by)
    end },
    { "^fast recovery (begins)", function(add, what) add("recovery", what) end },
    { "^recovery (ends)$", function(add, what) add("recovery", what) end },
    { "^nothing was lost, by (.*)$", function(add, by) add("recovery", "undone by " .. by) end },
    { "^CE: the network marked it$", function(add) add("ce", true) end },
    { "^(opens a hole)$", function(add, place) add("place", place) end },
    { "^(above a hole)$", function(add, place) add("place", place) end },
    { "^(fills a hole)$", function(add, place) add("place", place) end },
    { "^(a duplicate)$", function(add, place) add("place", place) end },
    { "^(%d+) hops$", function(add, hops) add("hops", tonumber(hops)) end },
    { "^agents by (.*)$", function(add, rule) add("agents_by", rule) end },
    { "^shadow (%d+) of .- would ([%w-]+): (.*)$", function(add, nth, what, text)
        add("shadow", nth .. ": " .. what .. ", " .. text)
    end },
    { "^for (.-), (try %d+ of at most %d+.*)$", access },
    { "^for (everyone), (sent once.*)$", access },
    { "^no answer: (.*)$", lost_to },
    { "^.- answered, but that was (.*)$", lost_to },
    { "^the packet is given up$", function(add) add("mac_given_up", true) end },
    { "^link to ([%x:]+)$", function(add, station) add("link_to", station) end },
    { "^signal (-?%d+) dBm$", function(add, dbm) add("link_signal", tonumber(dbm)) end },
    { "^([%d.]+) Mbit/s$", function(add, rate) add("link_rate", tonumber(rate)) end },
    { "^(.*) in (%d+) ms$", function(add, text, over)
        add("link_over", tonumber(over))
        add("link_packets", tonumber(text:match("(%d+) packets")))
        add("link_retries", tonumber(text:match("(%d+) retries")))
        add("link_lost", tonumber(text:match("(%d+) lost")))
        add("link_airtime", tonumber(text:match("airtime ([%d.]+) %%")))
    end },
    { "^heard ([%d.]+) ms ago$", function(add, ms) add("link_heard", tonumber(ms)) end },
    { "^told ([%d.]+) ms ago$", function(add, ms) add("link_told", tonumber(ms)) end },
}

-- Shows each thing that a comment says once: the first counts, but where there may be several.
local function comment(text, tree)
    local branch, known = nil, {}
    local function add(name, value)
        if value == nil or value == "" or known[name] then
            return
        end
        known[name] = not is_repeated[name]
        branch = branch or tree:add(hopwise, "Hopwise: what the capture says")
        branch:add(said[name], value):set_generated()
    end
    for part in (text .. "; "):gmatch("(.-); ") do
        for _, shape in ipairs(shapes) do
            local found = { part:match(shape[1]) }
            if #found > 0 then
                shape[2](add, table.unpack(found))
                break
            end
        end
    end
end

-- What an older Lua calls otherwise.
table.unpack = table.unpack or unpack

local function tcp_said(pinfo, tree)
    local options, syn = tcp_options(), tcp_syn()
    if options == nil or syn == nil then
        return
    end
    local range, at = options.range, 0
    while at < range:len() do
        local kind = range(at, 1):uint()
        if kind == END then
            return
        elseif kind == NOP then
            at = at + 1
        else
            local len = at + 1 < range:len() and range(at + 1, 1):uint() or 0
            if len < 2 or at + len > range:len() then
                return
            end
            if len >= 4 then
                dissect(range(at, len), syn.value, pinfo, tree)
            end
            at = at + len
        end
    end
end

function hopwise.dissector(_, pinfo, tree)
    for _, one in ipairs({ comments() }) do
        comment(tostring(one), tree)
    end
    tcp_said(pinfo, tree)
end

register_postdissector(hopwise)

-- GPSR: a place is two whole numbers of centimetres.
local gpsr = Proto("gpsr", "Greedy Perimeter Stateless Routing")
local kinds = { [1] = "beacon", [2] = "greedy", [3] = "perimeter" }
local lengths = { [1] = 12, [2] = 20, [3] = 44 }
local places = { { "sender", 4 }, { "destination", 12 }, { "entered", 20 }, { "face", 28 } }
local header = {
    kind = ProtoField.uint8("gpsr.kind", "Mode", base.DEC, kinds),
    next = ProtoField.uint8("gpsr.next", "Next header"),
    len = ProtoField.uint16("gpsr.len", "Length"),
    edge_from = ProtoField.ipv4("gpsr.edge_from", "First edge, from"),
    edge_to = ProtoField.ipv4("gpsr.edge_to", "First edge, to"),
}
for _, place in ipairs(places) do
    header[place[1] .. "_x"] = ProtoField.int32("gpsr." .. place[1] .. "_x", place[1] .. ", x (cm)")
    header[place[1] .. "_y"] = ProtoField.int32("gpsr." .. place[1] .. "_y", place[1] .. ", y (cm)")
end
for _, field in pairs(header) do
    table.insert(gpsr.fields, field)
end

local protocols = DissectorTable.get("ip.proto")

function gpsr.dissector(packet, pinfo, tree)
    local kind = packet:len() >= 4 and packet(0, 1):uint() or 0
    local len = lengths[kind]
    if len == nil or packet:len() < len or packet(2, 2):uint() ~= len then
        return 0
    end
    local branch = tree:add(gpsr, packet(0, len))
    branch:append_text(", " .. kinds[kind])
    branch:add(header.kind, packet(0, 1))
    branch:add(header.next, packet(1, 1))
    branch:add(header.len, packet(2, 2))
    for _, place in ipairs(places) do
        if place[2] + 8 <= len then
            branch:add(header[place[1] .. "_x"], packet(place[2], 4))
            branch:add(header[place[1] .. "_y"], packet(place[2] + 4, 4))
        end
    end
    if kind == 3 then
        branch:add(header.edge_from, packet(36, 4))
        branch:add(header.edge_to, packet(40, 4))
    end
    pinfo.cols.protocol = "GPSR"
    pinfo.cols.info = "GPSR " .. kinds[kind]
    if packet:len() > len then
        protocols:try(packet(1, 1):uint(), packet(len):tvb(), pinfo, tree)
    end
    return packet:len()
end

protocols:add(254, gpsr)

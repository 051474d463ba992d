-- Shows in Wireshark and tshark what the agents of two Hopwise endpoints tell each other in TCP options: our own (kind
-- 253 with ExID 0x4857, RFC 6994) and the ACK-rate request (kind 254 with ExID 0x00AC) of
-- draft-ietf-tcpm-ack-rate-request-10: the rate is the high seven bits of its octet, as Wireshark's own TARR field says.
--
--   tshark -X lua_script:docs/wireshark/hopwise.lua -r FILE -Y hopwise -T fields -e frame.number -e hopwise.cwnd
--
-- In Wireshark: copy it to the folder of personal Lua plugins (Help, About, Folders).

local KIND_HOPWISE, EXID_HOPWISE = 253, 0x4857
local KIND_RATE, EXID_RATE = 254, 0x00ac
local END, NOP = 0, 1

local hopwise = Proto("hopwise", "Hopwise agents")

local offers = {
    ProtoField.bool("hopwise.offer.tell_cwnd", "Tells its congestion window", 8, nil, 0x01),
    ProtoField.bool("hopwise.offer.use_cwnd", "Uses the peer's congestion window", 8, nil, 0x02),
    ProtoField.bool("hopwise.offer.tell_dup_count", "Counts duplicate ACKs for the peer", 8, nil, 0x04),
    ProtoField.bool("hopwise.offer.use_dup_count", "Uses the peer's count of duplicate ACKs", 8, nil, 0x08),
    ProtoField.bool("hopwise.offer.tell_told", "Tells what is left of a train", 8, nil, 0x10),
    ProtoField.bool("hopwise.offer.use_told", "Uses what the peer tells of its trains", 8, nil, 0x20),
    ProtoField.bool("hopwise.offer.tell_in_window", "Tells cwnd in the window field of data", 8, nil, 0x40),
    ProtoField.bool("hopwise.offer.use_in_window", "Finds cwnd in the window field of data", 8, nil, 0x80),
}
local fields = {
    offer = ProtoField.uint8("hopwise.offer", "Offer", base.HEX),
    cwnd = ProtoField.uint16("hopwise.cwnd", "Congestion window in segments"),
    dup_count = ProtoField.uint8("hopwise.dup_count", "Segments out of order since the last in order"),
    told = ProtoField.uint8("hopwise.told", "Segments of the train still to come"),
    rate_offer = ProtoField.bool("hopwise.rate_offer", "Understands ACK-rate requests"),
    rate = ProtoField.uint8("hopwise.rate", "Segments that are to share an ACK"),
}
local malformed = ProtoExpert.new("hopwise.malformed", "An option that is not well formed", expert.group.MALFORMED,
    expert.severity.WARN)

for _, field in ipairs(offers) do
    table.insert(hopwise.fields, field)
end
for _, field in pairs(fields) do
    table.insert(hopwise.fields, field)
end
hopwise.experts = { malformed }

local tcp_options = Field.new("tcp.options")
local tcp_syn = Field.new("tcp.flags.syn")

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
    local announced = { { 1, "cwnd", 2 }, { 2, "dup_count", 1 }, { 4, "told", 1 } }
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

function hopwise.dissector(_, pinfo, tree)
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

register_postdissector(hopwise)

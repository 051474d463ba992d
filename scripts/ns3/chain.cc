// One bulk TCP flow over a chain of 802.11b stations, in ns-3. scripts/check-ns3 compiles it and says what it is for.
//
// Radio, MAC, queue and TCP are set as `hopwise run` has them;
// what stays ns-3's own is its PHY's reception and its DCF.
// `--limit=7` ends what ns-3 leaves endless: tries of an RTS that nobody answers. `--errors=sinr` takes Hopwise's
// thresholds in place of ns-3's error rates.

#include "stations.h"

#include "ns3/aodv-module.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <dlfcn.h>
#include <iostream>
#include <map>

namespace ns3
{

// Hopwise's rule in place of ns-3's curves: bits come through when they exceed noise and all other frames by what their
// rate takes. ns-3 asks no error model of the user's for DSSS (error-rate-model.cc, GetChunkSuccessRate), so that these
// stand in for the library's own functions.
static bool by_threshold = false;

static double
SuccessRate(const char* own, double needed_db, double sinr, uint64_t bits)
{
    if (by_threshold)
    {
        return 10 * std::log10(sinr) >= needed_db ? 1 : 0;
    }
    auto curve = reinterpret_cast<double (*)(double, uint64_t)>(dlsym(RTLD_NEXT, own));
    NS_ABORT_MSG_UNLESS(curve, own << " is not in this ns-3");
    return curve(sinr, bits);
}

double
DsssErrorRateModel::GetDsssDbpskSuccessRate(double sinr, uint64_t bits)
{
    return SuccessRate("_ZN3ns318DsssErrorRateModel23GetDsssDbpskSuccessRateEdm", 4, sinr, bits);
}

double
DsssErrorRateModel::GetDsssDqpskSuccessRate(double sinr, uint64_t bits)
{
    return SuccessRate("_ZN3ns318DsssErrorRateModel23GetDsssDqpskSuccessRateEdm", 7, sinr, bits);
}

double
DsssErrorRateModel::GetDsssDqpskCck11SuccessRate(double sinr, uint64_t bits)
{
    return SuccessRate("_ZN3ns318DsssErrorRateModel28GetDsssDqpskCck11SuccessRateEdm", 10, sinr, bits);
}

} // namespace ns3

using namespace ns3;

// A constant rate, with an end to the tries of an RTS.
class LimitedManager : public ConstantRateWifiManager
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("check::LimitedManager")
                                .SetParent<ConstantRateWifiManager>()
                                .AddConstructor<LimitedManager>()
                                .AddAttribute("Limit",
                                              "Transmissions of an RTS, 0: no end",
                                              UintegerValue(0),
                                              MakeUintegerAccessor(&LimitedManager::m_limit),
                                              MakeUintegerChecker<uint32_t>());
        return tid;
    }

  private:
    uint32_t m_limit = 0;
    uint32_t m_failed = 0;

    void DoReportRtsFailed(WifiRemoteStation* station) override { m_failed++; }

    void DoReportRtsOk(WifiRemoteStation* station, double snr, WifiMode mode, double rtsSnr) override
    {
        m_failed = 0;
    }

    bool DoNeedRetransmission(WifiRemoteStation* station, Ptr<const Packet> packet, bool normally) override
    {
        if (m_limit > 0 && m_failed >= m_limit)
        {
            m_failed = 0;
            return false;
        }
        return normally;
    }
};

NS_OBJECT_ENSURE_REGISTERED(LimitedManager);

static std::map<std::string, uint64_t> counts;
static bool counting = false;

static void
Count(std::string name)
{
    counts[name] += counting;
}

static void
OnSent(Ptr<const Packet> packet, double power_w)
{
    WifiMacHeader header;
    auto rest = packet->Copy();
    rest->RemoveHeader(header);
    Count(header.IsRts() ? "rts" : header.IsCts() ? "cts" : header.IsAck() ? "ack" : "data");
    LlcSnapHeader llc;
    Ipv4Header ip;
    if (!header.IsData() || !rest->RemoveHeader(llc) || llc.GetType() != Ipv4L3Protocol::PROT_NUMBER)
    {
        return;
    }
    rest->RemoveHeader(ip);
    if (ip.GetProtocol() == UdpL4Protocol::PROT_NUMBER)
    {
        UdpHeader udp;
        aodv::TypeHeader type;
        rest->RemoveHeader(udp);
        rest->RemoveHeader(type);
        const bool is_hello = type.Get() == aodv::AODVTYPE_RREP && ip.GetTtl() == 1;
        Count(is_hello                               ? "aodv hello"
              : type.Get() == aodv::AODVTYPE_RREQ ? "aodv request"
              : type.Get() == aodv::AODVTYPE_RERR ? "aodv error"
                                                  : "aodv reply");
    }
}

static void OnRtsFailed(Mac48Address) { Count("rts unanswered"); }

static void OnDataFailed(Mac48Address) { Count("data unanswered"); }

static void OnMacDrop(WifiMacDropReason, Ptr<const WifiMpdu>) { Count("given up"); }

static void
OnPhyDrop(Ptr<const Packet>, WifiPhyRxfailureReason reason)
{
    std::ostringstream name;
    name << reason;
    Count("not received: " + name.str());
}

// What a station does with a packet begins a while after it came, as in a machine. Without that a relay's packet finds
// the medium idle in the SIFS before the relay's own ACK, and ns-3 draws no backoff for it.
static void
Later(Ptr<TrafficControlLayer> layer,
      Time processing,
      Ptr<NetDevice> device,
      Ptr<const Packet> packet,
      uint16_t protocol,
      const Address& from,
      const Address& to,
      NetDevice::PacketType type)
{
    Simulator::Schedule(processing, &TrafficControlLayer::Receive, layer, device, packet, protocol, from, to, type);
}

static uint64_t
Received(Ptr<PacketSink> sink)
{
    return sink->GetTotalRx();
}

int
main(int argc, char* argv[])
{
    std::string rate = "2", errors = "own", routing = "static";
    uint32_t hops = 4, every = 1, seed = 1, limit = 0, processing_us = 0;
    bool rts = true;
    double from_s = 20, to_s = 80;
    CommandLine cmd(__FILE__);
    cmd.AddValue("rate", "2 or 11 Mbit/s", rate);
    cmd.AddValue("hops", "hops, 200 m each", hops);
    cmd.AddValue("every", "segments to an ACK", every);
    cmd.AddValue("seed", "seed", seed);
    cmd.AddValue("rts", "RTS before each packet", rts);
    cmd.AddValue("limit", "transmissions of an RTS, 0: ns-3's own, without end", limit);
    cmd.AddValue("processing", "microseconds before a packet that came is looked at", processing_us);
    cmd.AddValue("errors", "own or sinr", errors);
    cmd.AddValue("routing", "static or aodv", routing);
    cmd.AddValue("from", "counted from this second", from_s);
    cmd.AddValue("to", "counted to this second", to_s);
    cmd.Parse(argc, argv);

    by_threshold = errors == "sinr";
    RngSeedManager::SetSeed(seed);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(every));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(100)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("50p")));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(3600)));

    NodeContainer nodes(hops + 1);
    MobilityHelper mobility;
    auto places = CreateObject<ListPositionAllocator>();
    for (uint32_t n = 0; n <= hops; n++)
    {
        places->Add(Vector(200.0 * n, 0, 0));
    }
    mobility.SetPositionAllocator(places);
    mobility.Install(nodes);

    auto phy = RadiosOfTheChain();
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("check::LimitedManager",
                                 "DataMode",
                                 StringValue("DsssRate" + rate + "Mbps"),
                                 "ControlMode",
                                 StringValue("DsssRate1Mbps"),
                                 "NonUnicastMode",
                                 StringValue("DsssRate1Mbps"),
                                 "RtsCtsThreshold",
                                 UintegerValue(rts ? 0 : 1000000),
                                 "Limit",
                                 UintegerValue(limit));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    auto devices = wifi.Install(phy, mac, nodes);
    wifi.AssignStreams(devices, 1000);
    // Neighbours are known from the beginning; else every mandatory rate would become a basic one.
    for (uint32_t n = 0; n <= hops; n++)
    {
        auto device = DynamicCast<WifiNetDevice>(devices.Get(n));
        auto manager = device->GetRemoteStationManager();
        for (uint32_t m = 0; m <= hops; m++)
        {
            auto address = Mac48Address::ConvertFrom(devices.Get(m)->GetAddress());
            for (const auto& mode : device->GetPhy()->GetModeList())
            {
                manager->AddSupportedMode(address, mode);
            }
            manager->RecordDisassociated(address);
        }
        manager->AddBasicMode(WifiMode("DsssRate1Mbps"));
    }

    InternetStackHelper internet;
    AodvHelper aodv;
    Ipv4StaticRoutingHelper fixed;
    if (routing == "aodv")
    {
        internet.SetRoutingHelper(aodv);
    }
    else
    {
        internet.SetRoutingHelper(fixed);
    }
    internet.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    auto interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    KnowAllAddresses(nodes, devices, interfaces);
    if (routing == "aodv")
    {
        aodv.AssignStreams(nodes, 5000);
    }
    else
    {
        RouteAlongTheChain(fixed, nodes, interfaces);
    }

    for (uint32_t n = 0; n <= hops && processing_us > 0; n++)
    {
        auto layer = nodes.Get(n)->GetObject<TrafficControlLayer>();
        nodes.Get(n)->UnregisterProtocolHandler(MakeCallback(&TrafficControlLayer::Receive, layer));
        nodes.Get(n)->RegisterProtocolHandler(MakeBoundCallback(&Later, layer, MicroSeconds(processing_us)),
                                              Ipv4L3Protocol::PROT_NUMBER,
                                              devices.Get(n));
    }

    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(hops), 9));
    source.Install(nodes.Get(0)).Start(Seconds(1));
    PacketSinkHelper target("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    auto sink = DynamicCast<PacketSink>(target.Install(nodes.Get(hops)).Get(0));

    const std::string device = "/NodeList/*/DeviceList/*/$ns3::WifiNetDevice/";
    Config::ConnectWithoutContext(device + "Phy/PhyTxBegin", MakeCallback(&OnSent));
    Config::ConnectWithoutContext(device + "Phy/PhyRxDrop", MakeCallback(&OnPhyDrop));
    Config::ConnectWithoutContext(device + "Mac/DroppedMpdu", MakeCallback(&OnMacDrop));
    Config::ConnectWithoutContext(device + "RemoteStationManager/MacTxRtsFailed", MakeCallback(&OnRtsFailed));
    Config::ConnectWithoutContext(device + "RemoteStationManager/MacTxDataFailed", MakeCallback(&OnDataFailed));

    uint64_t before = 0;
    Simulator::Schedule(Seconds(from_s), [&]() {
        before = Received(sink);
        counting = true;
    });
    Simulator::Stop(Seconds(to_s));
    Simulator::Run();
    double kbps = (Received(sink) - before) * 8 / (to_s - from_s) / 1000;
    std::cout << "{\"goodput_kbps\": " << kbps;
    for (const auto& [name, count] : counts)
    {
        std::cout << ", \"" << name << "\": " << count;
    }
    std::cout << "}" << std::endl;
    Simulator::Destroy();
}

// One bulk TCP flow over a chain of 802.11n stations, in ns-3. scripts/check-ns3 compiles it and says what it is for.
//
// Radio, MAC, queue and TCP are set as configs/calibration/ns3-ht.yaml has them. Reception, the DCF and rate control
// stay ns-3's own.

#include "stations.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <ctime>
#include <iostream>
#include <map>

using namespace ns3;

struct Cell
{
    std::string rate = "7", sender = "NewReno";
    uint32_t hops = 1, every = 1, seed = 1;
    bool aggregates = true, rts = false, mended = false;
    double from_s = 3, to_s = 9;
};

// ns-3 counts failures for all neighbours together, and no block ACK sets the count back. Here each neighbour has its
// own counts, and what arrives sets them back (docs/notebook/agreement.md).
class CountsOfEachNeighbour : public ConstantRateWifiManager
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId type = TypeId("CountsOfEachNeighbour")
                                 .SetParent<ConstantRateWifiManager>()
                                 .AddConstructor<CountsOfEachNeighbour>();
        return type;
    }

  private:
    struct Failures
    {
        uint32_t rts = 0, data = 0;
    };

    void DoReportRtsFailed(WifiRemoteStation* to) override { m_failures[to].rts++; }

    void DoReportDataFailed(WifiRemoteStation* to) override { m_failures[to].data++; }

    void DoReportRtsOk(WifiRemoteStation* to, double, WifiMode, double) override { m_failures[to].rts = 0; }

    void DoReportDataOk(WifiRemoteStation* to, double, WifiMode, double, uint16_t, uint8_t) override
    {
        m_failures[to].data = 0;
    }

    void DoReportAmpduTxStatus(WifiRemoteStation* to, uint16_t arrived, uint16_t, double, double, uint16_t, uint8_t)
        override
    {
        if (arrived > 0)
        {
            m_failures[to].data = 0;
        }
    }

    void DoReportFinalRtsFailed(WifiRemoteStation* to) override { m_failures[to].rts = 0; }

    void DoReportFinalDataFailed(WifiRemoteStation* to) override { m_failures[to].data = 0; }

    bool DoNeedRetransmission(WifiRemoteStation* to, Ptr<const Packet>, bool) override
    {
        constexpr uint32_t limit = 7;
        return m_failures[to].rts < limit && m_failures[to].data < limit;
    }

    std::map<WifiRemoteStation*, Failures> m_failures;
};

NS_OBJECT_ENSURE_REGISTERED(CountsOfEachNeighbour);

static void
SetDefaults(const Cell& cell)
{
    RngSeedManager::SetSeed(cell.seed);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::Tcp" + cell.sender)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4000000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4000000));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(cell.every));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(100)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    // The queue has what is in flight, too, and nothing grows too old in it.
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue("100p"));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1000000)));
    // With ns-3's 1 ms a response that comes later stalls the link for good.
    Config::SetDefault("ns3::QosTxop::AddBaResponseTimeout", TimeValue(Seconds(1)));
}

static NetDeviceContainer
InstallRadios(const Cell& cell, const NodeContainer& nodes)
{
    auto phy = RadiosOfTheChain();
    phy.Set("ChannelSettings", StringValue("{1, 20, BAND_2_4GHZ, 0}"));
    phy.Set("CcaSensitivity", DoubleValue(-78.07));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211n);
    const UintegerValue threshold(cell.rts ? 0 : 65535);
    if (cell.rate == "minstrel")
    {
        wifi.SetRemoteStationManager("ns3::MinstrelHtWifiManager", "RtsCtsThreshold", threshold);
    }
    else
    {
        wifi.SetRemoteStationManager(cell.mended ? "CountsOfEachNeighbour" : "ns3::ConstantRateWifiManager",
                                     "DataMode",
                                     StringValue("HtMcs" + cell.rate),
                                     "ControlMode",
                                     StringValue(cell.rate == "0" ? "ErpOfdmRate6Mbps" : "ErpOfdmRate24Mbps"),
                                     "RtsCtsThreshold",
                                     threshold);
    }
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac",
                "QosSupported",
                BooleanValue(true),
                "BE_MaxAmpduSize",
                UintegerValue(cell.aggregates ? 65535 : 0));
    auto devices = wifi.Install(phy, mac, nodes);
    wifi.AssignStreams(devices, 1000);
    return devices;
}

// Each station knows all others, and the next one on the way to the ends.
static Ipv4InterfaceContainer
InstallInternet(const NodeContainer& nodes, const NetDeviceContainer& devices)
{
    InternetStackHelper internet;
    Ipv4StaticRoutingHelper fixed;
    internet.SetRoutingHelper(fixed);
    internet.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    auto interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    KnowAllAddresses(nodes, devices, interfaces);
    RouteAlongTheChain(fixed, nodes, interfaces);
    return interfaces;
}

int
main(int argc, char* argv[])
{
    Cell cell;
    CommandLine cmd(__FILE__);
    cmd.AddValue("rate", "MCS 0 to 7, or minstrel", cell.rate);
    cmd.AddValue("hops", "hops, 200 m each", cell.hops);
    cmd.AddValue("every", "segments to an ACK", cell.every);
    cmd.AddValue("sender", "NewReno or Cubic", cell.sender);
    cmd.AddValue("aggregates", "A-MPDUs of up to 65,535 bytes", cell.aggregates);
    cmd.AddValue("rts", "RTS before each packet", cell.rts);
    cmd.AddValue("mended", "count failures for each neighbour, at a fixed rate", cell.mended);
    cmd.AddValue("seed", "seed", cell.seed);
    cmd.AddValue("from", "counted from this second of the flow", cell.from_s);
    cmd.AddValue("to", "counted to this second of the flow", cell.to_s);
    cmd.Parse(argc, argv);

    SetDefaults(cell);
    NodeContainer nodes(cell.hops + 1);
    MobilityHelper mobility;
    mobility.SetPositionAllocator("ns3::GridPositionAllocator",
                                  "DeltaX",
                                  DoubleValue(200),
                                  "GridWidth",
                                  UintegerValue(cell.hops + 1));
    mobility.Install(nodes);
    auto devices = InstallRadios(cell, nodes);
    auto interfaces = InstallInternet(nodes, devices);

    const double begin_s = 1;
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(cell.hops), 9));
    source.Install(nodes.Get(0)).Start(Seconds(begin_s));
    PacketSinkHelper target("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    auto sink = DynamicCast<PacketSink>(target.Install(nodes.Get(cell.hops)).Get(0));
    uint64_t before = 0;
    std::clock_t began = 0;
    Simulator::Schedule(Seconds(begin_s + cell.from_s), [&]() {
        before = sink->GetTotalRx();
        began = std::clock();
    });
    Simulator::Stop(Seconds(begin_s + cell.to_s));
    Simulator::Run();
    const double counted_s = cell.to_s - cell.from_s;
    const double cpu_s = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    std::cout << "{\"goodput_kbps\": " << (sink->GetTotalRx() - before) * 8 / counted_s / 1000
              << ", \"cpu_s_per_s\": " << cpu_s / counted_s << "}" << std::endl;
    Simulator::Destroy();
}

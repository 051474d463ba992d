// A chain of stations in ns-3 as Hopwise has it: reach, addresses and routes. The programs beside it share it.
#pragma once

#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

// Radios that are understood over 250 m and sensed over 550 m.
inline ns3::YansWifiPhyHelper
RadiosOfTheChain()
{
    using namespace ns3;
    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel",
                               "Frequency",
                               DoubleValue(914e6),
                               "HeightAboveZ",
                               DoubleValue(1.5));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("TxPowerStart", DoubleValue(24.5));
    phy.Set("TxPowerEnd", DoubleValue(24.5));
    phy.Set("RxSensitivity", DoubleValue(-78.07));
    phy.Set("CcaEdThreshold", DoubleValue(-78.07));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi", DoubleValue(-64.37));
    return phy;
}

// ARP knows all for good. Entries of NeighborCacheHelper would not do: AODV overlooks them when a frame is given up
// (aodv-neighbor.cc, LookupMacAddress).
inline void
KnowAllAddresses(const ns3::NodeContainer& nodes,
                 const ns3::NetDeviceContainer& devices,
                 const ns3::Ipv4InterfaceContainer& interfaces)
{
    for (uint32_t n = 0; n < nodes.GetN(); n++)
    {
        auto cache = nodes.Get(n)->GetObject<ns3::Ipv4L3Protocol>()->GetInterface(1)->GetArpCache();
        for (uint32_t m = 0; m < nodes.GetN(); m++)
        {
            auto entry = cache->Add(interfaces.GetAddress(m));
            entry->SetMacAddress(devices.Get(m)->GetAddress());
            entry->MarkPermanent();
        }
    }
}

// Routes from all stations to both ends.
inline void
RouteAlongTheChain(const ns3::Ipv4StaticRoutingHelper& fixed,
                   const ns3::NodeContainer& nodes,
                   const ns3::Ipv4InterfaceContainer& interfaces)
{
    const uint32_t hops = nodes.GetN() - 1;
    auto first = interfaces.GetAddress(0), last = interfaces.GetAddress(hops);
    for (uint32_t n = 0; n <= hops; n++)
    {
        auto routes = fixed.GetStaticRouting(nodes.Get(n)->GetObject<ns3::Ipv4>());
        if (n + 1 < hops)
        {
            routes->AddHostRouteTo(last, interfaces.GetAddress(n + 1), 1);
        }
        if (n > 1)
        {
            routes->AddHostRouteTo(first, interfaces.GetAddress(n - 1), 1);
        }
    }
}

//! Linux's Wi-Fi stack over our radios, in a guest. `scripts/test` runs these in a step of their own, since the first
//! run fetches the guest's packages.

#[path = "wifi/bringup.rs"]
mod bringup;
#[path = "wifi/doctor.rs"]
mod doctor;
#[path = "wifi/guests.rs"]
mod guests;
#[path = "wifi/hwsim.rs"]
mod hwsim;
#[path = "wifi/record.rs"]
mod record;

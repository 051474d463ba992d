//! Linux's Wi-Fi stack over our radios, in a guest. `scripts/test` runs these in a step of their own, since the first
//! run fetches the guest's packages.

mod bringup;
mod doctor;
mod guests;
mod hwsim;
mod programs;
mod record;

//! Enumerations whose variants have names for traces, metrics and captures.

/// Declares an enumeration with the list of its variants and the name of each.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)? }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        $vis enum $type { $($(#[$doc])* $variant),+ }

        impl $type {
            /// All of them, in the order of their counters.
            $vis const ALL: &[$type] = &[$($type::$variant),+];

            /// The name in traces, metrics and captures.
            $vis const fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }
    };
}

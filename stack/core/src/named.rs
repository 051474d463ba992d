//! Enumerations whose variants have names for people, files and programs. Also types that show some fields alone, and
//! errors whose variants have a text.

/// Declares enumerations, each with the list of its variants and the name of each variant.
#[macro_export]
macro_rules! named {
    ($(
        $(#[$about:meta])*
        $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)? }
    )+) => { $(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        $vis enum $type { $($(#[$doc])* $variant),+ }

        impl $type {
            /// All of them, in the order of their counters and columns.
            $vis const ALL: &[$type; [$($name),+].len()] = &[$($type::$variant),+];

            /// The name in traces, metrics, captures, files and tables.
            $vis const fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    )+ };
}

/// Shows a type by some of its fields, or by its name alone. The rest says nothing in a log, is secret, or cannot be
/// shown.
#[macro_export]
macro_rules! shown {
    ($type:ident $(: $($field:ident),+)?) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), &self.$field))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}

/// Declares errors, each with the text of each variant, in which the variant's fields may stand.
macro_rules! errors {
    ($(
        $(#[$about:meta])*
        $type:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident
                $(($($item:ident: $of:ty),+))?
                $({ $($(#[$field_doc:meta])* $field:ident: $field_of:ty),+ $(,)? })?
                = $text:literal
            ),+ $(,)?
        }
    )+) => { $(
        $(#[$about])*
        pub enum $type {
            $(
                $(#[$doc])*
                #[doc = ""]
                #[doc = $text]
                $variant $(($($of),+))? $({ $($(#[$field_doc])* $field: $field_of),+ })?
            ),+
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $($type::$variant $(($($item),+))? $({ $($field),+ })? => write!(f, $text)),+
                }
            }
        }

        impl std::error::Error for $type {}
    )+ };
}
pub(crate) use errors;

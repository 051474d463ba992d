# fetch.pl ADDRESS FILE: writes into the file what the server sends, until it ends.
use strict;
use warnings;
use IO::Socket::INET;

my ($address, $file) = @ARGV;
my $server = IO::Socket::INET->new(PeerAddr => $address) or die "$address: $!\n";
open(my $to, '>:raw', $file) or die "$file: $!\n";
$to->autoflush;
while (1) {
    my $read = sysread($server, my $bytes, 65536);
    die "$address: $!\n" unless defined $read;
    last unless $read;
    print $to $bytes;
}

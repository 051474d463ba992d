# serve.pl ADDRESS FILE GO-ON: sends the first half of the file to each client, and the rest once GO-ON is there.
use strict;
use warnings;
use IO::Socket::INET;

my ($address, $file, $go_on) = @ARGV;
my $server = IO::Socket::INET->new(LocalAddr => $address, Listen => 8, ReuseAddr => 1) or die "$address: $!\n";
open(my $from, '<:raw', $file) or die "$file: $!\n";
my $whole = do { local $/; <$from> };
my $half = int(length($whole) / 2);
while (my $client = $server->accept) {
    next if fork;
    print $client substr($whole, 0, $half);
    $client->flush;
    select(undef, undef, undef, 0.05) until -e $go_on;
    print $client substr($whole, $half);
    exit;
}

#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# console.pl COMMAND...: runs a command on a terminal of its own, as getty(8) does. stdin has lines PATTERN<TAB>TEXT: once the output
# has the pattern after what was typed before, the text is typed; a text that begins with ! is a command that is run elsewhere. Prints
# what the terminal shows, and at the end how the command ended.
use strict;
use warnings;
use POSIX qw(setsid EIO :sys_wait_h);

my @script = map { chomp; [split /\t/, $_, 2] } <STDIN>;
$| = 1;
open my $master, '+<', '/dev/ptmx' or die "ptmx: $!";
my ($unlocked, $number) = (pack('i', 0), pack('i', 0));
ioctl $master, 0x40045431, $unlocked or die "TIOCSPTLCK: $!";
ioctl $master, 0x80045430, $number or die "TIOCGPTN: $!";
my $name = '/dev/pts/' . unpack 'i', $number;
my $child = fork // die "fork: $!";
if ($child == 0) {
	setsid;
	open STDIN, '+<', $name or die "$name: $!";
	ioctl STDIN, 0x540E, 0 or die "TIOCSCTTY: $!";
	open STDOUT, '>&', \*STDIN;
	open STDERR, '>&', \*STDIN;
	close $master;
	exec @ARGV;
	die "exec: $!";
}
print "on $name\n";
my ($seen, $ended) = ('', 0);
until ($ended) {
	my $ready = '';
	vec($ready, fileno $master, 1) = 1;
	if (select($ready, undef, undef, 0.1) > 0) {
		my $got = sysread $master, my $text, 4096;
		if ($got) {
			print $text;
			$seen .= $text;
		}
		else {
			$ended = waitpid $child, WNOHANG; # EIO: login(1) hangs the terminal up first (vhangup(2)), or all have closed it
			select undef, undef, undef, 0.05;
		}
	}
	while (@script && $seen =~ /$script[0][0]/) {
		$seen = '';
		my $text = (shift @script)->[1];
		print `$1` and next if $text =~ /^!(.*)/;
		syswrite $master, "$text\n";
	}
	$ended ||= waitpid $child, WNOHANG;
}
vec(my $left = '', fileno $master, 1) = 1;
while (select(my $ready = $left, undef, undef, 0) > 0 && sysread $master, my $text, 4096) {
	print $text;
}
print "\nended ", $? & 127 ? 'by signal ' . ($? & 127) : $? >> 8, "\n";

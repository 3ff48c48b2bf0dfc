from namoo.extend import core as core

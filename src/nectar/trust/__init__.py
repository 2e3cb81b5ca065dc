"""Who is trusted: whose settings count, whose folders are used, who else may read and write what Nectar keeps."""
